"""For programs that use other libraries; each module needs the extra of its name."""
