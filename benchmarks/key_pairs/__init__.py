"""What `cache-keys` compiles: models that must share code in the cache, and models that must not."""
