package bench

import "testing"

func TestEventsThatAreMissingOrSwappedAreFound(t *testing.T) {
	all := jobEvents{}
	all.add("both", "SuccessfulCreate", 3)
	all.add("both", "Completed", 7)
	all.add("swapped", "Completed", 4)
	all.add("swapped", "SuccessfulCreate", 5)
	all.add("twice", "SuccessfulCreate", 9)
	all.add("twice", "SuccessfulCreate", 6)
	all.add("twice", "Completed", 8)
	all.add("lost", "Completed", 2)
	all.add("lost", "Resumed", 1)
	if there, swapped := all.there(), all.swapped(); there != 7 || swapped != 1 {
		t.Errorf("%d events are there and %d Jobs are swapped, want 7 and 1", there, swapped)
	}
}
