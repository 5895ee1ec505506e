package answer

import "fmt"

// Only returns the answer to a partial question that was asked about one item. It returns an error for
// an engine that has given none, or more than one.
func Only[T any](answers []T) (T, error) {
	if len(answers) != 1 {
		var none T
		return none, fmt.Errorf("asked about one item, got %d answers", len(answers))
	}
	return answers[0], nil
}
