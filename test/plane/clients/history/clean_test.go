package history

import "testing"

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"Created pod: a-0-x7k2p":                            "Created pod: a-0-~",
		"pod default/a-leader-0-0-bcdfg failed":             "pod default/a-leader-0-0-~ failed",
		"Created pod: a-x7k2p-vprzd":                        "Created pod: a-~-~",
		"a-workers-0":                                       "a-workers-0",
		"Created pod: a-2m45s":                              "Created pod: a-~",
		"Created pod: a-manual-25s-x7k2p":                   "Created pod: a-manual-~-~",
		"job-a-1f0e3 is admitted":                           "job-a-~ is admitted",
		"trainjob-a-52c1b is admitted":                      "trainjob-a-~ is admitted",
		"at 2026-11-27T11:44:02Z":                           "at TIME",
		"2026-11-27 11:44:02.123 +0000 UTC":                 "TIME UTC",
		"LAST DEPLOYED: Fri Nov 27 11:44:02 2026":           "LAST DEPLOYED: TIME",
		"Start Time:       Fri, 27 Nov 2026 11:44:02 +0000": "Start Time:  TIME",
		"Duration: 1m3s":                                    "Duration: DURATION",
		"a   Complete   1/1   1.25s":                        "a  Complete  1/1  DURATION",
		"6fa459ea-ee8a-3ca4-894e-db77e160355e is taken":     "UID is taken",
	} {
		if have := Clean(text); have != want {
			t.Errorf("Clean(%q) = %q, want %q", text, have, want)
		}
	}
}
