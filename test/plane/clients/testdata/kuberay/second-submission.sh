# The submitter fails once, and submits at its second try.
BACKOFF=1 rayjob '' "[ -e $PWD/tried ] || { touch $PWD/tried; exit 1; }; $(ray RUNNING); $(wait_for end); $(ray SUCCEEDED)"
until_value rayjob/a .status.jobStatus RUNNING
touch end
deployed Complete
