"""Pages of the API reference: one for each resource, made from the OpenAPI document."""
