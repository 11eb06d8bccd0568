"""From files to texts and from vectors to files, as streams of bounded memory."""
