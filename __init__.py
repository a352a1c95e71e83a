"""The root of the checkout; the packages are the folders here."""
