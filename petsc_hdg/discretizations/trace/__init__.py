"""The trace system of condensed schemes: its elements, layout, groups of facets and kernel specs."""
