"""Where the labels of an export come from: all grades, a version of the qrels, routes that failed their audit."""
