"""Paths inside a workspace: resolved, walked and matched without ever leaving it."""
