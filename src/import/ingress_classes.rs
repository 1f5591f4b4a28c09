//! The controllers of Ingresses, by their classes and annotations.

use hashbrown::{HashMap, HashSet};

use crate::manifest::ManifestNode;

/// The controllers of classes. NGINX Inc.'s controller and the community's one have the same class
/// `nginx` by default.
#[derive(Debug, Default)]
pub(crate) struct IngressClasses {
    /// By the names of the IngressClasses.
    controllers: HashMap<String, String>,
    /// Classes of Ingresses with annotations of the community's controller.
    community: HashSet<Option<String>>,
}

/// The class of an Ingress, with the node that names it.
pub(crate) fn class_of<'m>(ingress: &ManifestNode<'m>) -> Option<(&'m str, ManifestNode<'m>)> {
    let annotations = ingress.descend("metadata.annotations");
    let annotation = annotations.and_then(|it| it.get("kubernetes.io/ingress.class"));
    let node = annotation.or_else(|| ingress.descend("spec.ingressClassName"))?;
    Some((node.tree().text()?, node))
}

impl IngressClasses {
    /// The controller's name that an IngressClass has, if the object is one.
    pub(crate) fn read<'m>(&mut self, root: &ManifestNode<'m>) -> Option<&'m str> {
        if root.text_of("kind") != Some("IngressClass") {
            return None;
        }
        let name = root.descend("metadata.name")?.tree().text()?;
        let controller = root.descend("spec.controller")?.tree().text()?;
        self.controllers.insert(name.to_owned(), controller.to_owned());
        Some(controller)
    }

    /// Remembers that an Ingress of this class has annotations of the community's controller.
    pub(crate) fn add_community(&mut self, class: Option<&str>) {
        self.community.insert(class.map(str::to_owned));
    }

    /// The controller of a class, if its IngressClass is known.
    pub(crate) fn controller(&self, class: &str) -> Option<&str> {
        self.controllers.get(class).map(String::as_str)
    }

    /// Whether NGINX Inc.'s controller serves an Ingress of this class with annotations of it:
    /// by the IngressClass, else unless an Ingress of the class has some of the community's.
    pub(crate) fn is_f5(&self, class: Option<&str>) -> bool {
        match class.and_then(|class| self.controller(class)) {
            Some(controller) => controller == "nginx.org/ingress-controller",
            None => !self.community.contains(&class.map(str::to_owned)),
        }
    }
}
