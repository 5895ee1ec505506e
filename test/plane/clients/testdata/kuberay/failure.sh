# The Ray job fails, then its submitter.
rayjob '' "$(ray RUNNING); $(wait_for end); $(ray FAILED); $(wait_for seen); exit 1"
until_value rayjob/a .status.jobStatus RUNNING
touch end
until_value rayjob/a .status.jobStatus FAILED
touch seen
deployed Failed
