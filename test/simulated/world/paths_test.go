package world

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// pathWorlds is how many worlds are played at least to collect what executors write, and morePathWorlds how many at most
// until each row of judgedFields has occurred.
const pathWorlds, morePathWorlds = 150, 600

// TestEachWrittenFieldHasAJudge collects the paths of all fields that executors write, and fails for one that judgedFields
// does not have, and for a row of judgedFields that does not occur.
func TestEachWrittenFieldHasAJudge(t *testing.T) {
	prepare()
	written := map[string]uint64{} // The first seed.
	used := map[string]bool{}
	for seed := uint64(1); seed <= pathWorlds || seed <= morePathWorlds && len(used) < len(judgedFields); seed++ {
		synctest.Test(t, func(*testing.T) {
			w := newWorld(drawn(seed), false)
			w.seen = func(write apiserver.Write) {
				if isExecutor(write.By) && write.Resource != "leases" {
					for _, path := range changedPaths(write) {
						if _, known := written[path]; !known {
							written[path] = seed
							used[rowOf(path)] = true
						}
					}
				}
			}
			w.run()
		})
	}
	for _, path := range slices.Sorted(maps.Keys(written)) {
		if rowOf(path) == "" {
			t.Errorf("no judge looks at %s, which world %d writes", path, written[path])
		}
	}
	for row := range judgedFields {
		if !used[row] {
			t.Errorf("no executor writes %s", row)
		}
	}
}

// rowOf is the most exact row of judgedFields for a path: the path itself, or a beginning of it that ends with *. Empty: none.
func rowOf(path string) (best string) {
	for row := range judgedFields {
		beginning, open := strings.CutSuffix(row, "*")
		if (row == path || open && strings.HasPrefix(path, beginning)) && len(row) > len(best) {
			best = row
		}
	}
	return best
}

// TestJudgesOfFieldsExist compares the names in judgedFields with the code.
func TestJudgesOfFieldsExist(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	files, err := filepath.Glob("*.go")
	must.Succeed(t, err)
	for _, file := range append(files, "../../kit/ledger/guards.go") {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		code.Write(text)
	}
	for path, by := range judgedFields {
		if by.judge == "" && by.reason == "" {
			t.Errorf("%s has neither a judge nor a reason", path)
		}
		if by.judge != "" && !strings.Contains(code.String(), " "+by.judge+"(") {
			t.Errorf("%s: there is no %s", path, by.judge)
		}
	}
}

// A lookout is the judge that looks at a field, or why none needs to.
type lookout struct{ judge, reason string }

const (
	byServer = "the API server sets it"
	metadata = "the API server sets it when it stores the object"
)

// judgedFields says of each field that executors write who looks at it. A row that ends with * is about all fields that begin so.
var judgedFields = map[string]lookout{
	"jobs[deleted]":              {judge: "judgeJobDeletion"},
	"jobs.metadata.deletion*":    {judge: "judgeJobDeletion"},
	"jobs.metadata.finalizers[]": {reason: "whether dependents go first: the end-to-end tests of times to live and of CronJobs"},
	"jobs.metadata.*":            {reason: metadata},
	"jobs.metadata.annotations*": {judge: "judgeNewRun"},
	"jobs.metadata.annotations[jobpolicy.dev/last-valid-policy]": {judge: "judgeLastValid"},
	"jobs.metadata.labels*":                {judge: "judgeNewRun"},
	"jobs.metadata.name":                   {judge: "judgeNewRun"},
	"jobs.metadata.namespace":              {judge: "cronJobStarted"},
	"jobs.metadata.ownerReferences[]*":     {judge: "judgeNewRun"},
	"jobs.spec.*":                          {judge: "judgeNewRun"},
	"jobs.apiVersion":                      {reason: byServer},
	"jobs.kind":                            {reason: byServer},
	"jobs.status.active":                   {judge: "judgePodCounts"},
	"jobs.status.ready":                    {judge: "judgePodCounts"},
	"jobs.status.terminating":              {judge: "judgePodCounts"},
	"jobs.status.completedIndexes":         {judge: "judgeIndexes"},
	"jobs.status.failedIndexes":            {judge: "judgeIndexes"},
	"jobs.status.succeeded":                {judge: "wrongSucceeded"},
	"jobs.status.failed":                   {judge: "wrongFailed"},
	"jobs.status.uncountedTerminatedPods*": {judge: "judgeRecorded"},
	"jobs.status.startTime":                {judge: "judgeTimes"},
	"jobs.status.completionTime":           {judge: "judgeTimes"},
	"jobs.status.conditions[].type":        {judge: "judgeVerdicts"},
	"jobs.status.conditions[].status":      {judge: "conditionsGone"},
	"jobs.status.conditions[]*":            {judge: "judgeWords"},

	"pods[deleted]":                    {judge: "judgeDeletion"},
	"pods.metadata.deletion*":          {judge: "judgeOrder"},
	"pods.metadata.finalizers[]":       {judge: "judgeRelease"},
	"pods.metadata.ownerReferences[]*": {judge: "judgeOwnership"},
	"pods.metadata.*":                  {reason: metadata},
	"pods.metadata.namespace":          {judge: "judgeCreation"},
	"pods.metadata.name":               {judge: "judgeNewPod"},
	"pods.metadata.generateName":       {judge: "judgeNewPod"},
	"pods.metadata.labels*":            {judge: "judgeNewPod"},
	"pods.metadata.annotations*":       {judge: "judgeNewPod"},
	"pods.metadata.annotations[batch.kubernetes.io/job-index-failure-count]":         {judge: "judgeIndexDelay"},
	"pods.metadata.annotations[batch.kubernetes.io/job-index-ignored-failure-count]": {judge: "judgeIndexDelay"},
	"pods.metadata.annotations[jobpolicy.dev/resource-step]":                         {judge: "judgeRaised"},
	"pods.metadata.annotations[example.com/*":                                        {reason: "the webhook of the world sets it"},
	"pods.spec.*":     {judge: "judgeNewPod"},
	"pods.status.*":   {reason: byServer},
	"pods.apiVersion": {reason: byServer},
	"pods.kind":       {reason: byServer},

	"cronjobs.metadata.annotations[jobpolicy.dev/next-schedule-time]": {judge: "judgePublishes"},
	"cronjobs.metadata.annotations[jobpolicy.dev/last-valid-policy]":  {judge: "judgeLastValidOfCron"},
	"cronjobs.metadata.annotations[jobpolicy.dev/run-now]":            {judge: "judgeRun"},
	"cronjobs.metadata.resourceVersion":                               {reason: metadata},
	"cronjobs.status.active[]*":                                       {judge: "judgeActive"},
	"cronjobs.status.active[].resourceVersion":                        {reason: "it says which version was listed, and nobody reads it"},
	"cronjobs.status.lastScheduleTime":                                {judge: "judgeActive"},
	"cronjobs.status.lastSuccessfulTime":                              {judge: "judgeLastSuccess"},

	"events.involvedObject.*":               {judge: "judgeReference"},
	"events.involvedObject.resourceVersion": {reason: "it says which version the executor knew, and nobody reads it"},
	"events.count":                          {judge: "endTold"},
	"events.firstTimestamp":                 {judge: "judgeReference"},
	"events.lastTimestamp":                  {judge: "judgeReference"},
	"events.message":                        {judge: "judgeEvent"},
	"events.reason":                         {judge: "judgeEvent"},
	"events.type":                           {judge: "judgeEvent"},
	"events.source.component":               {judge: "judgeReference"},
	"events.reporting*":                     {reason: byServer},
	"events.metadata.*":                     {reason: metadata},
	"events.apiVersion":                     {reason: byServer},
	"events.kind":                           {reason: byServer},
}

// changedPaths are the paths of the fields that a write sets, changes or removes, without the positions of list entries. Keys of
// labels and annotations are part of a path; [deleted] stands for the deletion of an object.
func changedPaths(w apiserver.Write) []string {
	if w.New == nil {
		return []string{w.Resource + "[deleted]"}
	}
	paths := map[string]bool{}
	differ(w.Resource, asJSON(w.Old), asJSON(w.New), paths)
	return slices.Collect(maps.Keys(paths))
}

func asJSON(object any) (value any) {
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		panic(err)
	}
	return value
}

// differ adds the paths in which two values differ.
func differ(path string, was, is any, paths map[string]bool) {
	before, _ := was.(map[string]any)
	after, isMap := is.(map[string]any)
	if isMap || before != nil {
		for key := range maps.Keys(both(before, after)) {
			next := path + "." + key
			if strings.HasSuffix(path, ".labels") || strings.HasSuffix(path, ".annotations") {
				next = path + "[" + key + "]"
			}
			differ(next, before[key], after[key], paths)
		}
		return
	}
	had, _ := was.([]any)
	if has, isList := is.([]any); isList || had != nil {
		for i := range max(len(had), len(has)) {
			differ(path+"[]", at(had, i), at(has, i), paths)
		}
		return
	}
	if was != is {
		paths[path] = true
	}
}

func both(a, b map[string]any) map[string]bool {
	keys := map[string]bool{}
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	return keys
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}
