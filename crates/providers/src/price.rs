//! The cost of machines.

use ralph_loop_domain::ports::Resources;
use ralph_loop_protocol::money::Usd;

/// A vendor's list prices per hour. Lists change, so results are estimates; `sandbox.hourly_usd` in the configuration
/// overrides them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prices {
    pub vcpu: f64,
    pub memory_gib: f64,
    pub disk_gib: f64,
}

impl Prices {
    /// E2B's list prices of 2026.
    pub const E2B: Self = Self { vcpu: 0.0504, memory_gib: 0.0162, disk_gib: 0.0 };
    /// Daytona's list prices of 2026.
    pub const DAYTONA: Self = Self { vcpu: 0.0504, memory_gib: 0.0162, disk_gib: 0.000_108 };

    /// The price of a machine of this size; `usual` has the defaults.
    pub fn hourly(&self, resources: &Resources, usual: &Resources) -> Usd {
        let part = |said: Option<f64>, usual: Option<f64>, price: f64| {
            said.or(usual).unwrap_or(0.0).max(0.0) * price
        };
        Usd::from_dollars(
            part(resources.vcpu, usual.vcpu, self.vcpu)
                + part(resources.memory_gib, usual.memory_gib, self.memory_gib)
                + part(resources.disk_gib, usual.disk_gib, self.disk_gib),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_sizes_use_the_default_price() {
        let prices = Prices { vcpu: 0.05, memory_gib: 0.016, disk_gib: 0.0 };
        let usual = Resources { vcpu: Some(1.0), memory_gib: Some(1.0), disk_gib: Some(3.0) };
        let asked = Resources { vcpu: Some(2.0), ..Resources::default() };
        assert_eq!(prices.hourly(&asked, &usual), Usd::from_dollars(0.116));
    }
}
