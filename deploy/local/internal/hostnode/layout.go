package hostnode

import (
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// layout knows where things are below the node's root directory.
type layout struct{ root string }

func (l layout) pods() string             { return filepath.Join(l.root, "pods") }
func (l layout) lockFile() string         { return filepath.Join(l.root, "lock") }
func (l layout) pod(uid types.UID) string { return filepath.Join(l.pods(), string(uid)) }
func (l layout) container(uid types.UID, c string) string {
	return filepath.Join(l.pod(uid), "containers", c)
}

func (l layout) volume(uid types.UID, volume string) string {
	return filepath.Join(l.pod(uid), "volumes", volume)
}

// log is the file of one run of a container, numbered by the restarts before it.
func (l layout) log(uid types.UID, container string, attempt int32) string {
	return filepath.Join(l.pod(uid), "logs", container, fmt.Sprintf("%d.log", attempt))
}
