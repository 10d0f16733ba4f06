//! What the output of a check says: how many tests ran ([`scanner`]), which failed ([`failing`]), which numbers it printed
//! ([`numbers`]), and what is missing around it ([`environment`]).

pub mod environment;
pub mod failing;
pub mod numbers;
pub mod scanner;
