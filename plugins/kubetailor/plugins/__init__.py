"""Where chains run: the command line and the hosts, each a plugin like any other."""
