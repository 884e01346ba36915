"""The order of the stages: graph to regions to kernels to plan to executable."""
