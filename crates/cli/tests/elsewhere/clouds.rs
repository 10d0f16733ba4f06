//! Clouds, with stand-ins that are held to the vendors' published interfaces and run commands for real.
