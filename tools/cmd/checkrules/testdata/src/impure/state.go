package impure

import "strings"

type counter struct{ n int }

func (c *counter) add()      { c.n++ }
func (c counter) value() int { return c.n }

var (
	calls    int
	last     string
	memo     = map[string]int{}
	ring     [4]int
	total    counter
	shared   = &counter{}
	replacer strings.Builder
)

func stateful(key string) *int {
	calls++                   // want `write to package variable calls`
	calls += 2                // want `write to package variable calls`
	last = key                // want `write to package variable last`
	(last) = key              // want `write to package variable last`
	memo[key] = 1             // want `write to package variable memo`
	ring[1] = 2               // want `write to package variable ring`
	total.n = 3               // want `write to package variable total`
	shared.n = 4              // want `write to package variable shared`
	*shared = counter{}       // want `write to package variable shared`
	total.add()               // want `write to package variable total`
	replacer.WriteString(key) // want `write to package variable replacer`
	delete(memo, key)         // want `write to package variable memo`
	clear(memo)               // want `write to package variable memo`
	copy(ring[:], []int{1})   // want `write to package variable ring`
	for calls = range 3 {     // want `write to package variable calls`
	}
	for _, last = range []string{key} { // want `write to package variable last`
	}
	func() {
		last = key // want `write to package variable last`
	}()
	return &calls // want `write to package variable calls`
}

func init() {
	last = "start" // want `write to package variable last`
}
