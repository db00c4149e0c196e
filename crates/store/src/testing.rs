//! Databases for tests: one per test on each engine.
