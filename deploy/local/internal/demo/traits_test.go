package demo

import (
	"strings"
	"testing"
	"time"
)

func TestLogsAreChecked(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		check func([]string) error
		logs  []string
		good  bool
	}{
		"2000 digits":                {digitsOfPi, []string{"3.14159265358979323846" + strings.Repeat("0", 1979) + "\n"}, true},
		"too few digits":             {digitsOfPi, []string{"3.14159265358979323846"}, false},
		"not pi":                     {digitsOfPi, []string{strings.Repeat("1", 2001)}, false},
		"no log":                     {digitsOfPi, nil, false},
		"the time, then hello":       {timeAndHello, []string{"Thu Jan  1 12:00:00 UTC 2026\nHello from the Kubernetes cluster\n"}, true},
		"hello without the time":     {timeAndHello, []string{"Hello from the Kubernetes cluster\n"}, false},
		"said twice":                 {timeAndHello, []string{"Thu\nHello from the Kubernetes cluster\nHello from the Kubernetes cluster\n"}, false},
		"said in two pods":           {timeAndHello, []string{"Thu\nHello from the Kubernetes cluster\n", ""}, false},
		"all items once":             {eachItemOnce, []string{"item 1\nitem 3\nitem 5\n", "item 2\nitem 4\nitem 6\nitem 7\n", "item 8\nitem 9\n"}, true},
		"an item twice":              {eachItemOnce, []string{"item 1\nitem 2\nitem 3\nitem 4\nitem 5\n", "item 5\nitem 6\nitem 7\nitem 8\nitem 9\n"}, false},
		"each index":                 {eachIndexOnce, []string{"My index is 1\n", "My index is 0\n", "My index is 2", "My index is 4", "My index is 3"}, true},
		"an index is missing":        {eachIndexOnce, []string{"My index is 0", "My index is 1", "My index is 2", "My index is 4"}, false},
		"four full runs":             {fourFullRuns, []string{"completed", "completed", "completed", "completed"}, true},
		"the last run was cut short": {fourFullRuns, []string{"completed", "completed", "completed", "Hello"}, false},
		"hello":                      {hello, []string{"Hello world!\n"}, true},
		"hello twice":                {hello, []string{"Hello world!\n", "Hello world!\n"}, false},
		"two of each":                {twoOfEach, []string{"template of old\n", "template of new\n", "template of old\n", "template of new\n"}, true},
		"none was taken over":        {twoOfEach, []string{"template of new\n", "template of new\n", "template of new\n", "template of new\n"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := logs("", tc.check).differs(evidence{logs: tc.logs}); (err == nil) != tc.good {
				t.Errorf("differs() = %v", err)
			}
		})
	}
}

func TestTraitsAreChecked(t *testing.T) {
	t.Parallel()
	linux := map[string]string{"kubernetes.io/os": "linux"}
	past := history{
		highest:    peaks{active: 2, terminating: 3, alive: 3},
		startTimes: []time.Time{time.Unix(1, 0), time.Unix(5, 0)},
		pods: []podPast{
			{index: 0, nodeSelector: linux},
			{index: 0, restarts: 2, nodeSelector: linux},
			{index: 1, stopped: true, nodeSelector: linux},
		},
	}
	cases := map[string]struct {
		trait trait
		// seen is what the trait reports instead; empty if it holds.
		seen string
	}{
		"active within the bound":        {mostActive(2), ""},
		"active beyond the bound":        {mostActive(1), "2 active"},
		"alive within the bound":         {mostAlive(3), ""},
		"alive beyond the bound":         {mostAlive(2), "3 pods alive"},
		"terminating seen":               {mostTerminating(3), ""},
		"terminating not seen":           {mostTerminating(4), "seen terminating: 3"},
		"all pods":                       {podsInAll(3), ""},
		"another number of pods":         {podsInAll(2), "pods in all: 3"},
		"all runs":                       {containerRuns(5), ""},
		"another number of runs":         {containerRuns(4), "container runs: 5"},
		"pods of each index":             {podsByIndex(2, 1), ""},
		"an index has too many pods":     {podsByIndex(1, 1), "pods by index 2,1"},
		"an index has no pod":            {podsByIndex(2, 1, 1), "pods by index 2,1,0"},
		"an index too many":              {podsByIndex(2), "a pod with index 1"},
		"the stopped index":              {stoppedIndexes("1"), ""},
		"another index stopped":          {stoppedIndexes("0"), `the pods of indexes "1" stopped`},
		"all with the selector":          {selectNode("kubernetes.io/os", "linux"), ""},
		"not with another selector":      {selectNode("kubernetes.io/os", "plan9"), "a pod with nodeSelector map[kubernetes.io/os:linux]"},
		"two start times":                {startsAnew(), ""},
		"a pod where there must be none": {noPods(), "1 pods of its own"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := ""
			if err := tc.trait.differs(evidence{past: past, logs: []string{"a"}}); err != nil {
				seen = err.Error()
			}
			if seen != tc.seen {
				t.Errorf("%q is answered with %q, want %q", tc.trait.text, seen, tc.seen)
			}
		})
	}
}
