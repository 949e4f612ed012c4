"""The methods of a result open its views: the one place that looks up the list."""
