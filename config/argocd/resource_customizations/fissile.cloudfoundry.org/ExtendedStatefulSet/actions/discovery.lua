return {["restart"] = {}}
