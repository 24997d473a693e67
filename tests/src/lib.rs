//! End to end: real hub, real claude, scripted model.
