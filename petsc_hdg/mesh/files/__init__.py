"""Files of meshes."""
