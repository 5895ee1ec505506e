package podcache

import (
	"cmp"
	"maps"
	"slices"
	"unique"
)

// Labels are the labels of a pod. They can be matched with a selector.
type Labels []label

// A label shares its texts in memory with the labels of other pods.
type label struct{ key, value unique.Handle[string] }

// labelsOf returns the labels in the order of their keys, so that equal labels compare
// equal.
func labelsOf(m map[string]string) Labels {
	if len(m) == 0 {
		return nil
	}
	l := make(Labels, 0, len(m))
	for key, value := range maps.All(m) {
		l = append(l, label{unique.Make(key), unique.Make(value)})
	}
	slices.SortFunc(l, func(a, b label) int { return cmp.Compare(a.key.Value(), b.key.Value()) })
	return l
}

// Lookup implements labels.Labels. It searches in the order of the keys: Kubernetes does not limit
// how many labels a pod has, and a selector may ask for each of them.
func (l Labels) Lookup(key string) (value string, exists bool) {
	i, found := slices.BinarySearchFunc(l, key, func(pair label, key string) int { return cmp.Compare(pair.key.Value(), key) })
	if !found {
		return "", false
	}
	return l[i].value.Value(), true
}

// Has implements labels.Labels.
func (l Labels) Has(key string) bool {
	_, exists := l.Lookup(key)
	return exists
}

// Get implements labels.Labels.
func (l Labels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Equal reports whether both have the same keys and values.
func (l Labels) Equal(other Labels) bool { return slices.Equal(l, other) }
