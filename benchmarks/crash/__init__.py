"""What the crash benchmark is made of: the served home, the stream of writes, the verdict on what is left."""
