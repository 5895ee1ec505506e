# The Ray job succeeds, then its submitter.
rayjob '' "$(ray RUNNING); $(wait_for end); $(ray SUCCEEDED)"
until_value rayjob/a .status.jobStatus RUNNING
touch end
deployed Complete
until_true job/a Complete
