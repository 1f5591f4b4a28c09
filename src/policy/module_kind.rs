//! The form of the module that reads a document.

/// How Envoy runs Diana.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModuleKind {
    /// As wasm, in a virtual machine.
    #[default]
    Wasm,
    /// As a dynamic module, in Envoy's own process.
    Native,
}
