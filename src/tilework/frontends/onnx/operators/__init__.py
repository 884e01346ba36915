"""How ONNX operators become graph operators: a file per family, each with `CONVERTERS` by operator name."""
