//! What the output of a check says: how many tests ran ([`scanner`]), which failed ([`failing`]) and why ([`assertion`]), which numbers it printed
//! ([`numbers`]), and what is missing around it ([`environment`]).

pub mod assertion;
pub mod environment;
pub mod failing;
pub mod numbers;
pub mod scanner;
