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

/// What happens to a request if Diana fails during its check, in the dynamic module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFault {
    /// It passes without a check.
    #[default]
    Pass,
    /// It is refused.
    Refuse,
}
