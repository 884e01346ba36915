"""The page of a compiled model: one HTML file with its charts, that needs no network and no script."""
