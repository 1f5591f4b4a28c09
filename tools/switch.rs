
/// Whether the mutant with a number is in force: `tools/switches.py` puts this at the end of the core.
#[doc(hidden)]
pub mod switch {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Says of each mutant that something asked for it.
    const COVER: usize = usize::MAX;

    static CHOSEN: LazyLock<usize> = LazyLock::new(|| {
        std::env::var("DIANA_MUTANT").ok().and_then(|number| number.parse().ok()).unwrap_or_default()
    });

    static MET: [AtomicBool; 16_384] = [const { AtomicBool::new(false) }; 16_384];

    #[inline]
    pub fn mutant(number: usize) -> bool {
        *CHOSEN == number || (*CHOSEN == COVER && meet(number))
    }

    #[cold]
    #[inline(never)]
    fn meet(number: usize) -> bool {
        if !MET[number].load(Ordering::Relaxed) && !MET[number].swap(true, Ordering::Relaxed) {
            let path = std::env::var("DIANA_MET").unwrap();
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
            file.write_all(format!("{number}\n").as_bytes()).unwrap();
        }
        false
    }
}
pub use switch::mutant;
