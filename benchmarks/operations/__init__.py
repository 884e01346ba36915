"""What the benchmarks of single operations run: each operation as a graph, as an ONNX model, in numpy and in torch."""
