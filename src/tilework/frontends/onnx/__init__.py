"""The ONNX importer: a file, its bytes or a `ModelProto` becomes a `Graph`; see `importer.import_model`."""
