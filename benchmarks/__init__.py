"""What kubetailor costs, as ratios measured side by side; see README.md."""
