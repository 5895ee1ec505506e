package podcache

import "google.golang.org/protobuf/encoding/protowire"

// A message lists the fields of a protobuf message that are kept, by number. A field
// that maps to nil is kept whole.
type message map[protowire.Number]message

var whole message

// Special keys of a message. They are not field numbers.
const (
	// onlyFirstOwner: the message is kept only if it contains firstOwner.
	onlyFirstOwner protowire.Number = -1
	// nothingElse: the field is cut down to firstOwner; it is dropped if it lacks firstOwner.
	nothingElse protowire.Number = -2
)

// The kept fields of each message. Kubernetes never changes the numbers of its API.
var (
	podEnvelope     = message{1: whole, 2: pod, 3: whole, 4: whole}
	podListEnvelope = message{1: whole, 2: podList, 3: whole, 4: whole}

	podList = message{1: whole, 2: pod} // metadata, items
	pod     = message{1: metadata, 2: spec, 3: status}

	metadata = message{
		1:  whole, // name
		3:  whole, // namespace
		5:  whole, // uid
		6:  whole, // resourceVersion
		8:  whole, // creationTimestamp
		9:  whole, // deletionTimestamp
		10: whole, // deletionGracePeriodSeconds
		11: whole, // labels
		12: whole, // annotations
		13: whole, // ownerReferences
		14: whole, // finalizers
		17: managedFields,
	}
	managedFields = message{
		onlyFirstOwner: whole,

		1: whole,                                   // manager
		7: message{1: message{nothingElse: whole}}, // fieldsV1
		8: whole,                                   // subresource
	}
	spec = message{
		4:  whole,         // terminationGracePeriodSeconds
		5:  whole,         // activeDeadlineSeconds
		10: whole,         // nodeName
		16: whole,         // hostname
		20: initContainer, // initContainers
	}
	initContainer = message{
		1:  whole, // name
		24: whole, // restartPolicy
	}
	status = message{
		1:  whole,           // phase
		2:  condition,       // conditions
		4:  whole,           // reason
		7:  whole,           // startTime
		8:  containerStatus, // containerStatuses
		10: containerStatus, // initContainerStatuses
	}
	condition = message{
		1: whole, // type
		2: whole, // status
		4: whole, // lastTransitionTime
		5: whole, // reason
	}
	containerStatus = message{
		1: whole,          // name
		2: containerState, // state
		3: containerState, // lastState
		5: whole,          // restartCount
	}
	containerState = message{
		1: waiting,    // waiting
		2: whole,      // running
		3: terminated, // terminated
	}
	waiting = message{
		1: whole, // reason
		2: whole, // message
	}
	terminated = message{
		1: whole, // exitCode
		2: whole, // signal
		3: whole, // reason
		4: whole, // message
		6: whole, // finishedAt
	}
)
