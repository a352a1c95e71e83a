"""JSON Patch (RFC 6902): `make` finds the patch between two documents, `apply` applies one, sharing what stays."""
