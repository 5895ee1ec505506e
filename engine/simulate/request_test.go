package simulate

import "testing"

// The engine compares restarts of regular containers and of sidecars apart, and reads none of other
// init containers (upstream maxContainerRestarts).
func TestRestartsOfAPodByKindOfContainer(t *testing.T) {
	container := func(restarts int32, c Container) *simContainer {
		return &simContainer{Container: &c, restarts: restarts}
	}
	pod := &simPod{life: &Pod{}, containers: []*simContainer{
		container(2, Container{Name: "main"}),
		container(3, Container{Name: "log", Init: true, RestartPolicy: restartAlways}),
		container(4, Container{Name: "setup", Init: true}),
	}}
	facts := (&player{}).facts(pod)
	if facts.MaxRestarts != 2 || facts.MaxSidecarRestarts != 3 || facts.Restarts != 9 {
		t.Errorf("restarts: %d of regular containers, %d of sidecars, %d in all; want 2, 3 and 9", facts.MaxRestarts, facts.MaxSidecarRestarts, facts.Restarts)
	}
}
