"""The ways to compute e^{-LT}Z and (θI + L)⁻¹Z, one a file, and the kernels that some of them share."""
