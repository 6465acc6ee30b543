"""Operations, a module for each thing that programs work with."""
