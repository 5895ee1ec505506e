package containernode

// PauseImage is the image of the process that holds a pod's namespaces.
const PauseImage = "jobpolicy.dev/pause:1"
