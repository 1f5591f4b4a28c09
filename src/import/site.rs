//! All limits of an nginx together, at the requests that their rules cover.

use std::any::Any;
use std::rc::Rc;

use diana_config::Reader;
use diana_replay::{Arrival, ReplayFleet};

use crate::document;
use crate::importer::ImportResult;
use crate::model::ModelDecision;
use crate::nginx::model::PlaceModel;
use crate::replayed::MOST_RULES;

/// The limits of an nginx that became rules.
pub struct OriginalSite<A> {
    rules: Vec<SiteRule<A>>,
}

struct SiteRule<A> {
    name: String,
    model: PlaceModel,
    /// Refuses the requests that the rule covers.
    covered: ReplayFleet<A>,
}

impl ImportResult {
    /// The limits of nginx behind the rules, at most fifty, without those in dry run.
    #[must_use]
    pub fn site<A: Arrival>(&self) -> OriginalSite<A> {
        let mut rules = Vec::new();
        for entry in &self.entries {
            for rule in &entry.rules {
                let model: Option<&dyn Any> = rule.model.as_deref().map(|model| model as &dyn Any);
                let model = model.and_then(|model| model.downcast_ref::<PlaceModel>());
                let is_dry_run = rule.keys.iter().any(|(key, _)| *key == "shadow");
                let (Some(model), false) = (model, is_dry_run || rules.len() == MOST_RULES) else {
                    continue;
                };
                let [_, all] = document::of_entry(entry, rule);
                let policy = Reader::default().policy(all.as_bytes());
                let fleet = policy.ok().and_then(|policy| ReplayFleet::new(&policy, 1, 1).ok());
                let Some(covered) = fleet else { continue };
                rules.push(SiteRule { name: rule.name.clone(), model: model.clone(), covered });
            }
        }
        OriginalSite { rules }
    }
}

impl<A: Arrival> OriginalSite<A> {
    /// Returns true if it has no limits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Decides about a request, which arrives after the earlier ones. Returns the decision, and the
    /// name of the rule for the limit that refuses the request or lets it wait.
    pub fn request(&mut self, request: &Rc<A>) -> (ModelDecision, Option<&str>) {
        let (mut models, mut names) = (Vec::new(), Vec::new());
        for SiteRule { name, model, covered } in &mut self.rules {
            if covered.request(request).is_refused() {
                models.push(model);
                names.push(name.as_str());
            }
        }
        let (decision, place) = PlaceModel::decide_together(&mut models, &**request);
        let name = names.get(place).filter(|_| decision != ModelDecision::Passes);
        (decision, name.copied())
    }
}
