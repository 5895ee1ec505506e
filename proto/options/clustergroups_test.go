package options_test

import (
	"cmp"
	"maps"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

func TestGroupsOfTheCluster(t *testing.T) {
	groups := options.ClusterGroups{}
	for _, text := range []string{"reports=3", "a=b=10000", "nightly load=1"} {
		if err := groups.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if want := (options.ClusterGroups{"reports": 3, "a=b": 10000, "nightly load": 1}); !maps.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
}

func TestGroupsOfTheClusterThatAreNone(t *testing.T) {
	const within = ": expected NAME=N, with a name of 1 to 63 bytes and a number of runs from 1 to 10000"
	for text, want := range map[string]string{
		"":                             `"": expected NAME=N, such as reports=3`,
		"reports":                      `"reports": expected NAME=N, such as reports=3`,
		"=3":                           `"=3"` + within,
		"reports=":                     `"reports="` + within,
		"reports=three":                `"reports=three"` + within,
		"reports=0":                    `"reports=0"` + within,
		"reports=-1":                   `"reports=-1"` + within,
		"reports=10001":                `"reports=10001"` + within,
		"reports=4294967297":           `"reports=4294967297"` + within,
		strings.Repeat("x", 64) + "=1": `"` + strings.Repeat("x", 64) + `=1"` + within,
		"twice=2":                      `"twice=2": expected each group once, the name "twice" comes twice`,
	} {
		if err := (options.ClusterGroups{"twice": 1}).Set(text); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// The order of the line is total: of two different CronJobs one is first.
func TestCompareClaims(t *testing.T) {
	at := func(seconds int64) *timestamppb.Timestamp { return &timestamppb.Timestamp{Seconds: seconds} }
	line := []*jobpolicyv1.GroupClaim{
		{CronJob: "z"},
		{CronJob: "y", Namespace: "blue", Since: at(0)},
		{CronJob: "a", Since: at(1)},
		{CronJob: "b", Since: at(1)},
		{CronJob: "b", Namespace: "blue", Since: at(1)},
		{CronJob: "z", Namespace: "blue", Since: at(1)},
		{CronJob: "a", Namespace: "red", Since: at(1)},
		{CronJob: "a", Namespace: "blue", Since: at(2)},
	}
	for i, a := range line {
		for j, b := range line {
			if got := options.CompareClaims(a, b); got != cmp.Compare(i, j) {
				t.Errorf("%v and %v: %d, want %d", a, b, got, cmp.Compare(i, j))
			}
		}
	}
}
