"""What a context is made of, beside its plan (`compression`). Pure."""
