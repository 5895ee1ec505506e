package bench

import "slices"

// medians merges the results of each contender in one scenario into one. Each figure
// is the median of its values. API calls are those of the first run.
func medians(results []Result) []Result {
	var out []Result
	runs := map[string]int{}
	values := map[string]map[Figure][]float64{} // by contender
	for _, r := range results {
		if values[r.Contender] == nil {
			values[r.Contender] = map[Figure][]float64{}
			out = append(out, r)
		}
		runs[r.Contender]++
		for f, value := range r.Figures {
			values[r.Contender][f] = append(values[r.Contender][f], value)
		}
	}
	for i := range out {
		out[i].Figures, out[i].Runs = Figures{}, runs[out[i].Contender]
		for f, all := range values[out[i].Contender] {
			out[i].Figures[f] = median(all)
		}
	}
	return out
}

// median returns the median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
