package world

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// pathWorlds is how many worlds are played to collect what executors write.
const pathWorlds = 150

// TestEachWrittenFieldHasAJudge collects the paths of all fields that executors write, and fails for one that judgedFields
// does not have, and for a row of judgedFields that does not occur.
func TestEachWrittenFieldHasAJudge(t *testing.T) {
	prepare()
	written := map[string]uint64{} // The first seed.
	for seed := uint64(1); seed <= pathWorlds; seed++ {
		synctest.Test(t, func(*testing.T) {
			w := newWorld(drawn(seed), false)
			w.seen = func(write apiserver.Write) {
				if isExecutor(write.By) && write.Resource != "leases" {
					for _, path := range changedPaths(write) {
						if _, known := written[path]; !known {
							written[path] = seed
						}
					}
				}
			}
			w.run()
		})
	}
	for _, path := range slices.Sorted(maps.Keys(written)) {
		t.Log(path, written[path])
	}
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
