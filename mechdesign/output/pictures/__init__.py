"""Maps and curves as matplotlib figures; the only place that imports matplotlib."""
