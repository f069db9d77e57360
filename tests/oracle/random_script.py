def random_script(seed):
    raise NotImplementedError
