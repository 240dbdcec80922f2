//! The conformance test of a probe: the protocol step by step, with what is wrong.
