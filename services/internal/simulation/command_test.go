package simulation

import (
	"regexp"
	"strings"
	"testing"

	"jobpolicy.dev/engine/simulate"
)

// The help lists the outcomes that the error about an unknown one does, and each can be read.
func TestTheHelpListsEveryOutcome(t *testing.T) {
	_, err := simulate.ParseScript("0:unknown")
	if err == nil {
		t.Fatal("an unknown outcome can be read")
	}
	_, list, _ := strings.Cut(simulateLong, "An OUTCOME is\n")
	for _, outcome := range []string{"succeed", "fail", "oom", "evict", "hang", "stuck"} {
		if !strings.Contains(err.Error(), outcome) {
			t.Errorf("the error does not name %s: %v", outcome, err)
		}
		if !strings.Contains(list, "\n  "+outcome) {
			t.Errorf("the help does not list %s", outcome)
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^  (\w+)`).FindAllStringSubmatch(list, -1) {
		if _, err := simulate.ParseScript("0:" + line[1]); err != nil {
			t.Errorf("the help lists %s: %v", line[1], err)
		}
	}
}
