"""Pure functions of arrays: eigensolvers, projections, selections, spannograms. No I/O."""
