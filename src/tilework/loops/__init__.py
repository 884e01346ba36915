"""The `LoopProgram`: a schedule tree of loops, storage and computations over typed buffers. Knows no operator."""
